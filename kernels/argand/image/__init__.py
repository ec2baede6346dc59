"""Power over directions from covariances of an antenna array; the call is `argand.image`."""
