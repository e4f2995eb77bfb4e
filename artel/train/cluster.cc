#include "artel/train/cluster.h"

#include <sched.h>

#include <algorithm>

namespace artel {

struct Cluster::State {
  int rank = 0, size = 1;
};

Cluster::Cluster() : state_(std::make_unique<State>()) {}
Cluster::Cluster(int, char**) : Cluster() {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;

int Cluster::rank() const { return state_->rank; }
int Cluster::size() const { return state_->size; }

int Cluster::cores() const {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace artel
