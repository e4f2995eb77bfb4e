#include "artel/comm/failure.h"

namespace artel::comm {
namespace {

// The cause comes last because Transport::abort may cut the end of a long text.
constexpr char kSeparator = '\x1f';

}  // namespace

std::string failure_text(std::string_view worker, std::string_view cause,
                         std::string_view reporter) {
  return fmt::format("{}{}{}{}{}", worker, kSeparator, reporter, kSeparator, cause);
}

Error failure_error(ErrorKind kind, std::string_view text) {
  const size_t first = text.find(kSeparator), second = text.find(kSeparator, first + 1);
  if (first == text.npos || second == text.npos) return {kind, std::string(text)};
  const std::string worker(text.substr(0, first)), cause(text.substr(second + 1));
  return {kind,
          fmt::format("{}{} (reported by rank {})",
                      worker.empty() ? "" : fmt::format("[comm] {}: ", worker), cause,
                      text.substr(first + 1, second - first - 1)),
          {worker, cause}};
}

}  // namespace artel::comm
