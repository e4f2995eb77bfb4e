// Runs a fuzz target without libFuzzer: the kept corpus and the seeds, then mutations of them with
// new random numbers for a moment. An input that ends badly is kept as a file.
//
//   artel_fuzz TARGET [--corpus FOLDER] [--failures FOLDER] [--seconds S] [--seed N] [FILE...]
//
// With files it reads only those, to look at a failure.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "tests/fuzz/structure.h"
#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSize = 1 << 16;
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;

struct Arguments {
  std::string target;
  fs::path corpus, failures = ".";
  double seconds = 0.5;
  uint64_t seed = std::random_device{}();
  std::vector<fs::path> files;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  const auto number = [](std::string_view text, auto& value) {
    const char* const end = text.data() + text.size();
    artel::require(std::from_chars(text.data(), end, value).ptr == end,
                   artel::ErrorKind::invalid_argument, "'{}' is not a number", text);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool option = word.starts_with("--");
    artel::require(!option || i + 1 < argc, artel::ErrorKind::invalid_argument, "{} needs a value",
                   word);
    if (word == "--corpus")
      arguments.corpus = argv[++i];
    else if (word == "--failures")
      arguments.failures = argv[++i];
    else if (word == "--seconds")
      number(argv[++i], arguments.seconds);
    else if (word == "--seed")
      number(argv[++i], arguments.seed);
    else if (option)
      artel::fail(artel::ErrorKind::invalid_argument, "unknown option '{}'", word);
    else if (arguments.target.empty())
      arguments.target = word;
    else
      arguments.files.emplace_back(word);
  }
  return arguments;
}

// Data for the signal handler, which saves the input that ends the process. A handler gets no
// arguments, so this is a single object.
struct Current {
  std::string file;
  std::string input;
};
Current& current() {
  static Current value;
  return value;
}

void keep_input(int signal) {
  const int file = ::open(current().file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && ::write(file, current().input.data(), current().input.size()) >= 0) {
    constexpr std::string_view kNote = "the input is in ";
    (void)!::write(STDERR_FILENO, kNote.data(), kNote.size());
    (void)!::write(STDERR_FILENO, current().file.data(), current().file.size());
    (void)!::write(STDERR_FILENO, "\n", 1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const artel::fuzz::Target& target, const std::string& input) {
  current().input = input;
  artel::fuzz::try_input(target, input);
}

// Numbers that tend to break readers: limits of lengths and signs.
uint64_t interesting(artel::Random& random) {
  constexpr uint64_t kNumbers[] = {0,          1,          0x7f,         0x80,
                                   0xff,       0xffff,     0x7fffffff,   0x80000000,
                                   0xffffffff, 0x10000000, ~uint64_t{0}, uint64_t{1} << 63};
  return kNumbers[random.below(std::size(kNumbers))];
}

void mutate(std::string& input, const std::vector<std::string>& known, artel::Random& random) {
  if (random.below(2) == 0)
    if (std::optional<std::string> inside = artel::fuzz::mutate_inside(input, random)) {
      if (inside->size() <= kMaxSize) input = std::move(*inside);
      return;
    }
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
      const std::string& other = known[random.below(known.size())];
      const size_t from = other.empty() ? 0 : random.below(other.size());
      input = input.substr(0, at) + other.substr(from);
      break;
    }
    default:
      input.insert(at, 1, static_cast<char>(random.next_u32()));
  }
  if (input.size() > kMaxSize) input.resize(kMaxSize);
}

std::vector<std::string> corpus_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<std::string> inputs;
  for (const fs::path& file : files) inputs.push_back(artel::read_file(file));
  return inputs;
}

int fuzz(const Arguments& arguments) {
  const artel::fuzz::Target& target = artel::fuzz::target(arguments.target);
  for (const fs::path& file : arguments.files)
    artel::fuzz::try_input(target, artel::read_file(file));
  if (!arguments.files.empty()) return 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A disproportionate allocation throws std::bad_alloc, which is not caught.
  const rlimit limit{kMaxMemory, kMaxMemory};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
  fs::create_directories(arguments.failures);
  current().file =
      (arguments.failures / fmt::format("fuzz-{}-{}", target.name, arguments.seed)).string();
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, keep_input);
  std::printf("seed %llu\n", static_cast<unsigned long long>(arguments.seed));
  std::fflush(stdout);
  std::vector<std::string> known = target.seeds();
  for (const std::string& seed : known) target.read(artel::make_bytes(seed, "seed"));
  const std::vector<std::string> corpus = corpus_in(arguments.corpus);
  for (const std::string& input : corpus) run(target, input);
  known.insert(known.end(), corpus.begin(), corpus.end());
  const auto start = artel::Clock::now();
  uint64_t count = 0;
  while (artel::seconds_between(start, artel::Clock::now()) < arguments.seconds) {
    artel::Random random{arguments.seed, count++};
    std::string input = known[random.below(known.size())];
    for (uint64_t i = 0; i <= random.below(8); ++i) mutate(input, known, random);
    run(target, input);
  }
  std::printf("%zu of the corpus, %llu mutations\n", corpus.size(),
              static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return fuzz(arguments_of(argc, argv));
  } catch (const artel::Error& error) {
    std::fprintf(stderr, "artel_fuzz: %s\n", error.what());
    return 2;
  }
}

// Normally provided by libFuzzer.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }
