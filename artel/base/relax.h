#pragma once

namespace artel {

// Pauses briefly inside a spin loop, yielding execution units to the core's other hardware thread.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace artel
