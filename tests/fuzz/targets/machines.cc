#include "artel/base/error.h"
#include "artel/plan/machines/machine_file.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::machines {

// Machines that can be read have workers, and can be used by a plan.
void read(const Bytes& bytes) {
  const plan::Machines all = plan::parse_machines(bytes.text(), bytes.name);
  for (const int64_t workers : {int64_t{1}, all.workers(), 2 * all.workers()}) {
    const plan::Pool pool = plan::pool_of(all, workers);
    require(workers > 0 && pool.machines > 0 && pool.between.bandwidth > 0 && pool.kind.flops > 0,
            ErrorKind::internal, "machines without speed");
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> all = {
      "[[machine]]\nname = 'a'\nflops = '1 GFLOP/s'\nmemory = 1e9\nmemory_bandwidth = '1 GB/s'\n"
      "switch = 'x'\nnetwork = '10GbE'\nshared_cores = true\ncount = 4\n[machine.op.product]\n"
      "flops = '2 GFLOP/s'\n[[switch]]\nname = 'x'\nuplink = 'y'\n[[switch]]\nname = 'y'\n"};
  for (const std::string& name : plan::known_machines())
    all.push_back(to_toml(plan::machines_by_name(name)));
  return all;
}

}  // namespace artel::fuzz::machines
