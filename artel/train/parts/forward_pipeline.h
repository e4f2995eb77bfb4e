// Forward passes of a network too large for one worker. Each worker has some layers and sends its
// values to the next ones. All receive the outputs, with the bits of a single worker.
//
// Saves memory, not time: a worker waits while the others compute.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/predict/evaluator.h"

namespace artel {

class ForwardPipeline final : public ProgramParts {
 public:
  // Borrows the group. Calls `fill(name)` once for each parameter that this worker's part reads.
  ForwardPipeline(comm::Group& group, std::function<void(const std::string&)> fill)
      : group_(group), fill_(std::move(fill)) {}

  void restrict(Program& program) override;
  void run(const Program& program, Frame& frame, ThreadPool& pool) override;

 private:
  struct Part {
    std::map<int, std::vector<int>> from, to;  // buffers, by worker
    std::vector<std::pair<int, int>> outputs;  // buffers, with the worker that computes them
  };
  void fill_parameters(const Program& program);

  comm::Group& group_;
  std::function<void(const std::string&)> fill_;
  std::set<std::string> filled_;
  std::map<const Program*, Part> parts_;
};

}  // namespace artel
