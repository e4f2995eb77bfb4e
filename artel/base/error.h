// The one exception type of Artel.
//
//   try {
//     artel::Trainer other(cluster, model, {.loss = "mes"});
//   } catch (const artel::Error& error) {
//     // "unknown loss 'mes'; did you mean 'mse'?; known: ..."
//     artel::log(artel::LogLevel::error, "{}", error.what());
//   }
//
// A message reads `[where] what: got X, expected Y; try Z`: one line that names the culprit. The
// kind lets callers (and the program's exit code) tell a user's mistake from a broken file or a
// lost peer.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace artel {

enum class ErrorKind {
  invalid_argument,  // the caller asked for something impossible
  shape,             // tensors or layers that do not fit together
  not_found,         // a file, a key, a name
  io,                // the operating system refused
  corrupt,           // a file or message whose content is wrong
  unsupported,       // valid, but not in this build or on this machine
  memory,            // does not fit
  numeric,           // NaN or infinity where a number was needed
  communication,     // a peer died, disagreed or could not be reached
  timeout,           // a deadline passed
  cancelled,         // stopped on request
  internal,          // a bug in Artel
};

std::string_view to_string(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// The common end of fail and require: out of line, so that a check adds little code to its callers.
[[noreturn]] void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args);

// Throws an Error whose message is formatted as by fmt::format.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(kind, format, fmt::make_format_args(args...));
}

// Throws unless the condition holds. The arguments are formatted only on failure.
template <typename... Args>
void require(bool condition, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    throw_error(kind, format, fmt::make_format_args(args...));
}

}  // namespace artel
