// Log lines for people, on standard error: `artel: text`, or with a worker's name once it has one.
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

// The prefix of each line, such as "worker 3". Thread safe.
void set_log_name(std::string name);

void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

// Writes text for people to a stream such as standard error. What cannot be written is lost: a full
// disk behind it must not end a training.
void tell(std::FILE* stream, std::string_view text);

// Writes one line to standard output and flushes it. Control characters are shown, not obeyed.
void print_line(std::string_view text);

template <typename... Args>
void println(fmt::format_string<Args...> format, Args&&... args) {
  print_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace artel
