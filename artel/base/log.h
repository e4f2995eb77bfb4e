// Log lines on standard error: `artel: text`, or `worker 3: text` once the process has a name.
// Thread safe.
//
//   artel::set_log_level(artel::LogLevel::info);
//   artel::log(artel::LogLevel::info, "{} samples", samples->size());
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace artel {

enum class LogLevel { debug, info, warning, error };

void set_log_level(LogLevel level);

// Sets the prefix of each line, such as "worker 3".
void set_log_name(std::string name);

void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

// Writes text to a stream such as standard error. Ignores write errors: a full disk must not end a
// training.
void tell(std::FILE* stream, std::string_view text);

// Writes one line to standard output and flushes it. Escapes control characters.
void print_line(std::string_view text);

template <typename... Args>
void println(fmt::format_string<Args...> format, Args&&... args) {
  print_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace artel
