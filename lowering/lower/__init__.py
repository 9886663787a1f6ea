"""The passes from blocks and buffers of many axes to flat programs."""
