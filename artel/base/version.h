// The version of Artel: of these headers, and of the library that a program is linked to.
//
//   artel::println("Artel {}", artel::library_version());
//   artel::check_headers(artel::kHeaderVersion);
#pragma once

#include <string_view>

namespace artel {

// The one place where it is written; CMake reads this line.
inline constexpr std::string_view kHeaderVersion = "0.2.0";

// Of the library.
std::string_view library_version();

// Throws if a program was compiled with headers of a version that the library does not fit: the
// first two numbers have to be equal.
void check_headers(std::string_view version);

}  // namespace artel
