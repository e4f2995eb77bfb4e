// Prints the seconds that workers need to learn the digests of all files at a path: read for the
// first time, and known from before.
#include <cstdio>
#include <filesystem>

#include "artel/base/time.h"
#include "artel/data/file_digests.h"

int main(int count, char** arguments) {
  using namespace artel;
  if (count != 3) {
    std::fprintf(stderr, "usage: artel_bench_data_check PATH CACHE\n");
    return 2;
  }
  const std::filesystem::path path = arguments[1], cache = arguments[2];
  std::filesystem::remove_all(cache);
  for (const char* const name : {"read", "known"}) {
    const Clock::time_point begin = Clock::now();
    data::FileDigests digests({path}, {.cache = cache});
    digests.wait();
    std::printf("%s %zu %.4f\n", name, digests.files().size(),
                seconds_between(begin, Clock::now()));
  }
  return 0;
}
