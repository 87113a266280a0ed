"""Kernels used only by table ordering."""
