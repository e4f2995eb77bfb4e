// The workers of a run: one, or all that the launcher started.
#pragma once

#include <memory>

namespace artel {

class Cluster {
 public:
  // One worker: this process.
  Cluster();
  // What the launcher said on the command line or in the environment; one worker without a
  // launcher.
  Cluster(int argc, char** argv);
  ~Cluster();
  Cluster(Cluster&&) noexcept;

  int rank() const;
  int size() const;
  // The cores that this worker may use.
  int cores() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace artel
