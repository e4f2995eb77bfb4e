// What a fuzz target consists of.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/base/error.h"

namespace artel::fuzz {

// Reads the bytes as some kind of file. It may throw an artel::Error and nothing else; crashes,
// sanitizer reports and running out of memory are failures.
void read_untrusted(const Bytes& bytes);

// For readers of data that is not a file: runs `read` and adds the input's name to its errors.
template <typename Read>
void with_name(const Bytes& bytes, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    fail(error.kind(), "[{}] {}", bytes.name, error.what());
  }
}

// The input as a file, for readers that need one; not synced, to save time.
inline void write_input(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A few small valid files, from which mutations start.
std::vector<std::string> seeds();

}  // namespace artel::fuzz
