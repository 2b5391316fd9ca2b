"""Tests for a process with eight devices of the CPU; in_a_process.py starts that process."""
