#include "artel/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "artel/base/text.h"

namespace artel {
namespace {

// The logger is global, because a process has exactly one standard error.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "artel", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("artel: %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum native(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(native(level)); }

void set_log_name(std::string name) { logger().set_pattern(fmt::format("artel [{}]: %v", name)); }

void log_line(LogLevel level, std::string_view text) {
  logger().log(native(level), "{}{}", level == LogLevel::warning ? "warning: " : "",
               printable(text));
}

void print_line(std::string_view text) {
  fmt::print("{}\n", printable(text));
  std::fflush(stdout);
}

void tell(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace artel
