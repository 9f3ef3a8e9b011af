//! End-to-end tests: the real binary over real sockets
