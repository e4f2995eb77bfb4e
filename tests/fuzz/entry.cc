// One input of a target, and what libFuzzer calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "artel/base/random.h"
#include "tests/fuzz/structure.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz {

void try_input(const Target& target, std::string input) {
  // A buffer of exactly this size, so that a sanitizer sees every read beyond its end.
  input.shrink_to_fit();
  const Bytes bytes = make_bytes(std::move(input), "fuzz");
  try {
    target.read(bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::internal && std::strstr(error.what(), "fuzz") != nullptr) return;
    std::fprintf(stderr, "an error that does not name the input, or a fault: %s\n", error.what());
    std::abort();
  }
}

namespace {

// The target of this process; libFuzzer has no other way to pass it.
const Target*& chosen() {
  static const Target* target = nullptr;
  return target;
}

}  // namespace
}  // namespace artel::fuzz

// `--target=NAME`, which libFuzzer itself ignores.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i)
    if (const std::string_view word = (*argv)[i]; word.starts_with(kFlag))
      artel::fuzz::chosen() = &artel::fuzz::target(word.substr(kFlag.size()));
  if (artel::fuzz::chosen() != nullptr) return 0;
  std::fprintf(stderr, "which target? try --target=%s\n",
               std::string(artel::fuzz::targets().front().name).c_str());
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  artel::fuzz::try_input(*artel::fuzz::chosen(),
                         std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

// libFuzzer asks for a mutation; occasionally it gets a seed instead, so a run without a stored
// corpus also starts from valid inputs.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  static const std::vector<std::string> seeds = artel::fuzz::chosen()->seeds();
  if (seed % 64 == 0 || size == 0) {
    const std::string& chosen = seeds[seed / 64 % seeds.size()];
    if (chosen.size() <= max_size) {
      std::memcpy(data, chosen.data(), chosen.size());
      size = chosen.size();
    }
  }
  // Most mutations of what has a form keep it.
  artel::Random random{seed};
  if (random.below(4) > 0) {
    const auto inside =
        artel::fuzz::mutate_inside({reinterpret_cast<const char*>(data), size}, random);
    if (inside && inside->size() <= max_size) {
      std::memcpy(data, inside->data(), inside->size());
      return inside->size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
