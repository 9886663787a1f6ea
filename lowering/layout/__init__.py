"""Layouts of buffers: index maps, pad values, axis separators, and ready maps of textures."""
