// The entry point that libFuzzer and our own driver call, and the seeds for libFuzzer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "artel/base/error.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so a sanitizer sees every read beyond the end.
  const artel::Bytes bytes =
      artel::make_bytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  try {
    artel::fuzz::read_untrusted(bytes);
  } catch (const artel::Error& error) {
    if (std::strstr(error.what(), "fuzz") == nullptr) {
      std::fprintf(stderr, "an error that does not name the file: %s\n", error.what());
      std::abort();
    }
  }
  return 0;
}

// libFuzzer asks for a mutation; occasionally it gets a seed instead, so a run without a stored
// corpus also starts from valid files.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  static const std::vector<std::string> seeds = artel::fuzz::seeds();
  if (seed % 64 == 0 || size == 0) {
    const std::string& chosen = seeds[seed / 64 % seeds.size()];
    if (chosen.size() <= max_size) {
      std::memcpy(data, chosen.data(), chosen.size());
      size = chosen.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
