// The versions of the headers and of the linked library.
//
//   artel::println("Artel {}", artel::library_version());
//   artel::check_headers(artel::kHeaderVersion);
#pragma once

#include <string>
#include <string_view>

namespace artel {

// CMake reads the version from this line.
inline constexpr std::string_view kHeaderVersion = "0.2.0";

// The version of the linked library.
std::string_view library_version();

// Identifies the build of this program: the beginning of the linker's build ID. Empty without one.
std::string build_id();

// Throws unless the headers that a program was compiled with have the same major and minor version
// as the library.
void check_headers(std::string_view version);

}  // namespace artel
