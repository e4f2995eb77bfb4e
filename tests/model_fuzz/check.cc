#include "tests/model_fuzz/check.h"

#include <cctype>
#include <cstring>

#include "artel/base/error.h"
#include "tests/model_fuzz/training.h"

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

namespace {

template <typename Find>
Verdict verdict_of(const Find& find) {
  try {
    return {find(), {}};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) return {error.what(), {}};
    return {{}, error.what()};
  } catch (const std::exception& error) {  // of a library
    return {error.what(), {}};
  }
}

}  // namespace

Verdict check(const NetworkCase& network) {
  return verdict_of([&]() -> std::optional<std::string> {
    if (auto wrong = compare_with_reference(network)) return wrong;
    if (network.tune) return {};  // the choice of kernels depends on timing
    return network.workers > 1 ? compare_workers(network) : compare_bits(network);
  });
}

Verdict check_on(Device& device, const NetworkCase& network) {
  return verdict_of([&]() -> std::optional<std::string> {
    if (auto wrong = compare_with_reference(network, device)) return wrong;
    Training one(network, {.device = &device}), two(network, {.device = &device});
    for (int64_t step = 0; step < network.steps; ++step) {
      try {
        one.step();
        two.step();
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::numeric) return {};
        throw;
      }
    }
    const std::vector<float> first = one.bits(), second = two.bits();
    const bool same = first.size() == second.size() &&
                      std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0;
    if (same) return {};
    return "two trainings on the device have different bits";
  });
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
