"""The pipeline itself: streams, shards on several GPUs, memory of jobs, errors against bounds."""
