"""Tests for a process with eight devices of the CPU; test_eight_devices.py runs them in one."""
