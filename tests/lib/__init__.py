"""What the cases share: running programs, reading traces strictly, reading strace's output."""
