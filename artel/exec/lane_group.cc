// Lanes that run together (Program::run_lanes).
#include <algorithm>
#include <vector>

#include "artel/base/time.h"
#include "artel/exec/cpu/elementwise/copy.h"
#include "artel/exec/program.h"

namespace artel {

namespace {

bool suffices(const Kernel& lender, const Kernel& borrower) {
  return lender.workspace_bytes >= borrower.workspace_bytes;
}

}  // namespace

class LaneGroup {
 public:
  LaneGroup(std::span<const Program::Lane> lanes, std::span<const LaneSubtree> subtrees,
            ThreadPool& pool)
      : lanes_(lanes), subtrees_(subtrees), pool_(pool) {
    // All lanes use the kernels and the workspace of the largest lane.
    largest_ = &*std::ranges::max_element(lanes, {}, &Program::Lane::samples);
  }

  const PlannedKernel& planned(int kernel) const { return plan_of(*largest_).kernels[kernel]; }
  int kernels() const { return static_cast<int>(plan_of(*largest_).kernels.size()); }

  void run(int kernel) {
    const Kernel& joint = planned(kernel).kernel;
    if (planned(kernel).only_sums) {
      for (const LaneSubtree& subtree : subtrees_) run_sums(kernel, subtree);
    } else if (joint.run_lanes && lanes_.size() > 1) {
      joint.run_lanes(arguments_of(kernel, lanes_));
    } else {
      for (const Program::Lane& lane : lanes_)
        kernel_of(lane, kernel).run(arguments(kernel, lane, workspace(kernel, lane)));
    }
  }

  void check_numbers(int kernel) const {
    const bool sums = planned(kernel).only_sums;
    const auto check = [&](const Program::Lane& lane) {
      check_finite(lane.frame.program_.graph_, plan_of(lane), plan_of(lane).kernels[kernel],
                   lane.frame.pointers_, lane.context.step);
    };
    if (sums)
      for (const LaneSubtree& subtree : subtrees_) check(lanes_[subtree.first]);
    else
      std::ranges::for_each(lanes_, check);
  }

 private:
  static const Plan& plan_of(const Program::Lane& lane) { return lane.frame.program_.plan_; }
  static const Kernel& kernel_of(const Program::Lane& lane, int kernel) {
    return plan_of(lane).kernels[kernel].kernel;
  }
  // Lanes that run one after another use one workspace, if it is large enough.
  std::byte* workspace(int kernel, const Program::Lane& lane) const {
    const Program::Lane& owner =
        suffices(kernel_of(*largest_, kernel), kernel_of(lane, kernel)) ? *largest_ : lane;
    const int buffer = plan_of(owner).kernels[kernel].workspace;
    return buffer >= 0 ? owner.frame.pointers_[buffer] : nullptr;
  }

  KernelRun arguments(int kernel, const Program::Lane& lane, std::byte* workspace) const {
    const std::span<std::byte* const> all = lane.frame.arguments_[kernel];
    const size_t inputs = plan_of(lane).kernels[kernel].inputs.size();
    return {pool_,     all.first(inputs), all.subspan(inputs),
            workspace, lane.context,      kernel_of(lane, kernel).rows};
  }

  std::span<const KernelRun> arguments_of(int kernel, std::span<const Program::Lane> lanes) {
    arguments_.clear();
    for (const Program::Lane& lane : lanes)
      arguments_.push_back(arguments(kernel, lane, workspace(kernel, *largest_)));
    return arguments_;
  }

  // Computes the sum over a subtree. If the kernel cannot do that, each lane writes to the memory
  // of a lane whose sum is no longer needed, so only as many lanes' memory is used as sums exist at
  // a time.
  void run_sums(int kernel, const LaneSubtree& subtree) {
    const std::span<const Program::Lane> lanes = lanes_.subspan(subtree.first, subtree.size());
    const Kernel& joint = planned(kernel).kernel;
    if (joint.run_sums && lanes.size() > 1)
      return joint.run_sums(arguments_of(kernel, lanes), subtree.merges);
    int depth = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      KernelRun run = arguments(kernel, lanes[i], workspace(kernel, lanes[i]));
      run.outputs = arguments(kernel, lanes[depth], nullptr).outputs;
      kernel_of(lanes[i], kernel).run(run);
      for (int merge = 0; merge < subtree.merges[i]; ++merge, --depth)
        add(kernel, lanes[depth], lanes[depth - 1]);
      ++depth;
    }
  }

  void add(int kernel, const Program::Lane& from, const Program::Lane& into) const {
    const KernelRun x = arguments(kernel, from, nullptr), y = arguments(kernel, into, nullptr);
    const std::vector<int>& outputs = plan_of(into).kernels[kernel].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t floats = plan_of(into).buffers[outputs[i]].bytes / sizeof(float);
      kernels::add_into(pool_, static_cast<int64_t>(floats), x.out(static_cast<int>(i)),
                        y.out(static_cast<int>(i)));
    }
  }

  std::span<const Program::Lane> lanes_;
  std::span<const LaneSubtree> subtrees_;
  ThreadPool& pool_;
  const Program::Lane* largest_ = nullptr;
  std::vector<KernelRun> arguments_;
};

bool Program::match(const Program& a, const Program& b) {
  const auto same = [](const PlannedKernel& x, const PlannedKernel& y) {
    return x.op == y.op && x.layer == y.layer && x.kernel.algorithm == y.kernel.algorithm &&
           x.only_sums == y.only_sums && x.inputs.size() == y.inputs.size() &&
           x.outputs.size() == y.outputs.size() &&
           bool(x.kernel.run_lanes) == bool(y.kernel.run_lanes) &&
           bool(x.kernel.run_sums) == bool(y.kernel.run_sums);
  };
  return &a == &b || std::ranges::equal(a.plan_.kernels, b.plan_.kernels, same);
}

bool Program::lends(const Program& lender, const Program& borrower) {
  return std::ranges::equal(
      lender.plan_.kernels, borrower.plan_.kernels,
      [](const PlannedKernel& x, const PlannedKernel& y) { return suffices(x.kernel, y.kernel); });
}

void Program::run_lanes(std::span<const Lane> lanes, std::span<const LaneSubtree> subtrees,
                        ThreadPool& pool, const RunOptions& options) {
  LaneGroup group(lanes, subtrees, pool);
  for (int i = 0; i < group.kernels(); ++i) {
    const Clock::time_point begin = options.timing ? Clock::now() : Clock::time_point();
    group.run(i);
    if (options.timing) options.timing({i, seconds_between(begin, Clock::now())});
    if (options.check_numbers) group.check_numbers(i);
    if (options.after_kernel) options.after_kernel(i);
  }
}

}  // namespace artel
