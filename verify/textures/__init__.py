"""What must hold of a lowered program so that its textures can be images of a device."""
