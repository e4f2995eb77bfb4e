// Runs a fuzz target without libFuzzer: every seed, then mutations of them in a reproducible order,
// for about a second. `PROGRAM FILE...` reads files instead, to look at a failure.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Normally provided by libFuzzer.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }

namespace {

constexpr double kSeconds = 1.0;
constexpr size_t kMaxSize = 1 << 16;
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Numbers that tend to break readers: limits of lengths and signs.
uint64_t interesting(artel::Random& random) {
  constexpr uint64_t kNumbers[] = {0,          1,          0x7f,         0x80,
                                   0xff,       0xffff,     0x7fffffff,   0x80000000,
                                   0xffffffff, 0x10000000, ~uint64_t{0}, uint64_t{1} << 63};
  return kNumbers[random.below(std::size(kNumbers))];
}

void mutate(std::string& input, const std::vector<std::string>& seeds, artel::Random& random) {
  const size_t at = input.empty() ? 0 : random.below(input.size());
  const size_t length = std::min<size_t>(1 + random.below(16), input.size() - at);
  switch (random.below(8)) {
    case 0:
      if (!input.empty()) input[at] ^= static_cast<char>(1 << random.below(8));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(random.next_u32());
      break;
    case 2:
      input.resize(at);
      break;
    case 3:
      input.erase(at, length);
      break;
    case 4:
      input.insert(at, input.substr(at, length));
      break;
    case 5: {
      const uint64_t number = interesting(random);
      const size_t width = std::min<size_t>(size_t{1} << random.below(4), input.size() - at);
      for (size_t i = 0; i < width; ++i) input[at + i] = static_cast<char>(number >> (8 * i));
      break;
    }
    case 6: {
      const std::string& other = seeds[random.below(seeds.size())];
      const size_t from = random.below(other.size());
      input = input.substr(0, at) + other.substr(from);
      break;
    }
    default:
      input.insert(at, 1, static_cast<char>(random.next_u32()));
  }
  if (input.size() > kMaxSize) input.resize(kMaxSize);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) run(artel::read_file(argv[i]));
  if (argc > 1) return 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A disproportionate allocation throws std::bad_alloc, which nobody catches.
  const rlimit limit{kMaxMemory, kMaxMemory};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
  const std::vector<std::string> seeds = artel::fuzz::seeds();
  for (const std::string& seed : seeds)
    artel::fuzz::read_untrusted(artel::make_bytes(seed, "seed"));
  const auto start = artel::Clock::now();
  int64_t count = 0;
  while (artel::seconds_between(start, artel::Clock::now()) < kSeconds) {
    artel::Random random{static_cast<uint64_t>(count++)};
    std::string input = seeds[random.below(seeds.size())];
    for (uint64_t i = 0; i <= random.below(8); ++i) mutate(input, seeds, random);
    run(input);
  }
  std::printf("%lld inputs\n", static_cast<long long>(count));
  return 0;
}
