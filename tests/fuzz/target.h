// The definition of a fuzz target. Each file of targets/ defines one, in its own namespace; the
// table in targets.cc lists them all.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/base/error.h"

namespace artel::fuzz {

// Reads the bytes as some kind of file or message. It may throw an artel::Error that names the
// input, and nothing else; crashes, sanitizer reports and running out of memory are failures.
using Read = void(const Bytes& bytes);
// A few small valid inputs, from which mutations start.
using Seeds = std::vector<std::string>();

struct Target {
  std::string_view name;
  Read* read;
  Seeds* seeds;
};

const std::vector<Target>& targets();
// The one of that name. Throws if there is none.
const Target& target(std::string_view name);

// Reads an input, and aborts if that ends in a way it must not.
void try_input(const Target& target, std::string input);

// For readers of data that is not a file: runs `read` and adds the input's name to its errors.
template <typename Reader>
void with_name(const Bytes& bytes, const Reader& read) {
  try {
    read();
  } catch (const Error& error) {
    // A fault that the target itself has found must not pass as a refusal.
    if (error.kind() == ErrorKind::internal) throw;
    fail(error.kind(), "[{}] {}", bytes.name, error.what());
  }
}

// The input as a file, for readers that need one; not synced, to save time.
inline void write_input(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace artel::fuzz
