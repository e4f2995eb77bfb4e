// measure FILE: how fast a table is read and becomes samples. Printed as JSON, one object a line.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "artel/base/process.h"
#include "artel/data/tables/csv_set.h"

namespace {

// On a machine that has other work, too, the processor's time says more than the clock.
struct Times {
  double seconds, processor_seconds;
};

Times times_of(const auto& work) {
  const std::clock_t used = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC};
}

}  // namespace

int main(int, char** arguments) {
  using namespace artel;
  const std::filesystem::path path = arguments[1];
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  int64_t rows = 0;
  const Times parsing = times_of([&] { rows = data::read_csv(path).rows; });
  const Times first = times_of([&] { data::csv(path, {}, 0.1, 0); });
  const Times again = times_of([&] { data::csv(path, {}, 0.1, 0); });
  std::printf("{\"rows\": %lld, \"megabytes\": %.0f, \"peak_memory_megabytes\": %.0f}\n",
              static_cast<long long>(rows), megabytes,
              static_cast<double>(peak_memory_bytes()) / 1e6);
  const auto print = [&](const char* what, const Times& times) {
    std::printf(
        "{\"what\": \"%s\", \"megabytes_per_second\": %.0f, "
        "\"megabytes_per_processor_second\": %.0f}\n",
        what, megabytes / times.seconds, megabytes / times.processor_seconds);
  };
  print("parse", parsing);
  print("parse, encode and keep", first);
  print("map what was kept", again);
}
