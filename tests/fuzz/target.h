// What a fuzz target consists of.
#pragma once

#include <string>
#include <vector>

#include "artel/base/bytes.h"

namespace artel::fuzz {

// Reads the bytes as some kind of file. It may throw an artel::Error and nothing else; crashes,
// sanitizer reports and running out of memory are failures.
void read_untrusted(const Bytes& bytes);

// A few small valid files, from which mutations start.
std::vector<std::string> seeds();

}  // namespace artel::fuzz
