"""Power or Stokes parameters of beams, summed over time; the call is `argand.beam_power`."""
