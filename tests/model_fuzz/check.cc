#include "tests/model_fuzz/check.h"

#include <cctype>

#include "artel/base/error.h"

namespace artel::model_fuzz {
namespace {

// The words of a fault, without what is quoted, numbers and signs.
std::string fault_words(const std::string& text) {
  std::string words;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto letter = [&](size_t at) {
      return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at]));
    };
    if (text[i] == '\'') quoted = !quoted;
    const bool in_number = i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) &&
                           !letter(i - 1);  // the e of 1e-3
    if (!quoted && letter(i) && !in_number) words += text[i];
  }
  return words;
}

}  // namespace

bool same_fault(const std::string& a, const std::string& b) {
  return fault_words(a) == fault_words(b);
}

Verdict check(const NetworkCase& network) {
  try {
    if (auto wrong = compare_with_reference(network)) return {wrong, {}};
    if (network.tune) return {};  // the choice of kernels depends on timing
    return {network.workers > 1 ? compare_workers(network) : compare_bits(network), {}};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) return {error.what(), {}};
    return {{}, error.what()};
  } catch (const std::exception& error) {  // of a library
    return {error.what(), {}};
  }
  return {};
}

NetworkCase reduce(NetworkCase network, const std::string& wrong, const Find& find) {
  for (bool again = true; again;) {
    again = false;
    for (const NetworkCase& next : simpler(network)) {
      const std::optional<std::string> found = find(next);
      if (!found || !same_fault(*found, wrong)) continue;
      network = next;
      again = true;
      break;
    }
  }
  return network;
}

}  // namespace artel::model_fuzz
