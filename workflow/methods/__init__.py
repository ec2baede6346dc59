"""What the kinds of workload share: physics, circuits, transforms, peers."""
