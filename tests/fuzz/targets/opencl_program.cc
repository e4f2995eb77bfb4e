#include "artel/exec/opencl/program_cache.h"

#include "tests/fuzz/target.h"

namespace artel::fuzz::opencl_program {

// A kept OpenCL program: nothing, or a binary from which the same file is made.
void read(const Bytes& bytes) {
  constexpr std::string_view kKey = "device, driver, source";
  with_name(bytes, [&] {
    const std::string file(bytes.text());
    if (const auto binary = opencl::binary_in(file, kKey))
      require(opencl::cache_file(kKey, *binary) == file, ErrorKind::internal,
              "a kept program of {} bytes changed when it was read and written", file.size());
  });
}

std::vector<std::string> seeds() {
  return {opencl::cache_file("device, driver, source", "binary"), opencl::cache_file("other", "")};
}

}  // namespace artel::fuzz::opencl_program
