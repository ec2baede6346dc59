"""Polyphase filter banks: samples to spectra of channels; the call is `argand.channelise`."""
