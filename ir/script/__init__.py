"""Programs as text: reading both dialects of TVM's script syntax, and printing."""

from layoutproof.ir.script.init_check import check_init
from layoutproof.ir.script.printer import print_func, print_module
from layoutproof.ir.script.reader import load, load_module, loads, loads_module, read_text

__all__ = ["check_init", "load", "load_module", "loads", "loads_module", "print_func", "print_module", "read_text"]
