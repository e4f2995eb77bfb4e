#include "artel/exec/instructions.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "hwy/targets.h"

namespace artel {
namespace {

struct InstructionSet {
  const char* name;
  int64_t targets;  // of Highway: this set and its variants
  dnnl_cpu_isa_t library;
};

// The least first.
#if defined(__x86_64__)
constexpr std::array<InstructionSet, 3> kSets = {{
    {"sse4", HWY_SSE4, dnnl_cpu_isa_sse41},
    {"avx2", HWY_AVX2, dnnl_cpu_isa_avx2},
    {"avx512", HWY_AVX3, dnnl_cpu_isa_avx512_core},
}};
#else
constexpr std::array<InstructionSet, 1> kSets = {{{"neon", HWY_NEON, dnnl_cpu_isa_all}}};
#endif

// A property of the process, as its instructions are.
std::atomic<bool> limited{false};

const char* asked_for() { return std::getenv("ARTEL_INSTRUCTIONS"); }

bool has(const InstructionSet& set) { return (usable_targets() & set.targets) != 0; }

}  // namespace

int64_t usable_targets() {
  const int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);
  return targets;
}

const std::vector<std::string>& instruction_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const InstructionSet& set : kSets) all.emplace_back(set.name);
    return all;
  }();
  return names;
}

int best_instructions() {
  const char* const asked = asked_for();
  int best = 0;
  bool known = asked == nullptr;
  for (size_t i = 0; i < kSets.size(); ++i) {
    if (has(kSets[i])) best = static_cast<int>(i);
    known = known || kSets[i].name == std::string_view(asked);
    if (asked && kSets[i].name == std::string_view(asked)) break;
  }
  require(known, ErrorKind::invalid_argument,
          "the environment variable ARTEL_INSTRUCTIONS is '{}', expected one of {}", asked,
          join(instruction_names(), ", "));
  return best;
}

void limit_instructions(int place) {
  const InstructionSet& set = kSets.at(static_cast<size_t>(place));
  require(has(set), ErrorKind::unsupported,
          "cluster.instructions: got \"{}\", but this processor has only {}; try \"common\"",
          set.name, kSets[static_cast<size_t>(best_instructions())].name);
  limited = true;
  hwy::DisableTargets(set.targets - 1);  // better targets are lower bits
  if (set.library == dnnl_cpu_isa_all) return;
  const bool in_time = dnnl_set_max_cpu_isa(set.library) == dnnl_success;
  require(in_time || dnnl_get_effective_cpu_isa() == set.library, ErrorKind::unsupported,
          "cluster.instructions: got \"{}\" after kernels have been made with others; try a new "
          "process",
          set.name);
}

bool settle_instructions() {
  if (asked_for() != nullptr && !limited) limit_instructions(best_instructions());
  return limited;
}

}  // namespace artel
