// A disk cache of compiled OpenCL programs.
//
// Each program is a file in the folder `opencl` of $ARTEL_DATA or ~/.cache/artel. Its name is a
// digest of the key: device, driver, options, and source. Files that are damaged or have another
// key are ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace artel::opencl {

std::optional<std::string> kept_binary(const std::string& key);
// Only logs a failure, because a full disk must not stop a training.
void keep_binary(const std::string& key, std::string_view binary);

// The content of a cache file, and the binary in it; empty if the file is invalid or has another
// key.
std::string cache_file(std::string_view key, std::string_view binary);
std::optional<std::string_view> binary_in(std::string_view file, std::string_view key);

}  // namespace artel::opencl
