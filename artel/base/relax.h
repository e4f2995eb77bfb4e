#pragma once

namespace artel {

// In a loop that waits for another core: leaves the core's units to its other thread for a moment.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace artel
