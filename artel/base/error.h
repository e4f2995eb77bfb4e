// The one exception type of Artel.
//
//   try {
//     artel::Trainer other(cluster, model, {.loss = "mes"});
//   } catch (const artel::Error& error) {
//     // "unknown loss 'mes'; did you mean 'mse'?; known: ..."
//     artel::log(artel::LogLevel::error, "{}", error.what());
//   }
//
// A message is one line of the form `[where] what: got X, expected Y; try Z`. The kind
// distinguishes a user's mistake from a broken file or a lost peer, for callers and for the exit
// code.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace artel {

enum class ErrorKind {
  invalid_argument,  // the caller asked for something impossible
  shape,             // tensors or layers that do not fit together
  not_found,         // a missing file, key, or name
  io,                // a system call failed
  corrupt,           // a file or message with invalid content
  unsupported,       // valid, but not supported by this build or machine
  memory,            // not enough memory
  numeric,           // NaN or infinity where a number was needed
  communication,     // a peer died, disagreed, or could not be reached
  timeout,           // a deadline passed
  cancelled,         // stopped on request
  internal,          // a bug in Artel
};

std::string_view to_string(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  // A failure that another process has reported.
  struct Report {
    std::string worker;  // the failed worker, "worker 1 on host b"; empty for the whole group
    std::string cause;
  };

  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Error(ErrorKind kind, const std::string& message, Report report)
      : std::runtime_error(message),
        kind_(kind),
        report_(std::make_shared<const Report>(std::move(report))) {}

  ErrorKind kind() const { return kind_; }
  // Null for what has happened in this process.
  const Report* report() const { return report_.get(); }
  // The message without who has failed and who has noticed it.
  std::string_view cause() const { return report_ ? std::string_view(report_->cause) : what(); }

 private:
  ErrorKind kind_;
  std::shared_ptr<const Report> report_;  // shared: copies of exceptions must not throw
};

// Implements `fail` and `require`. Out of line, so that a check adds little code to its callers.
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
