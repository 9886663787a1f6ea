"""What a program does, as instances of accesses and statements, and the terms in which engines are asked about them."""
