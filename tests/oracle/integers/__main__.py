"""`python -m tests.oracle.integers`: the campaign of two kernels."""

import sys

from tests.oracle.integers.campaign import main

if __name__ == "__main__":
    sys.exit(main())
