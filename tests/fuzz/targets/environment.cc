#include <cstdlib>

#include "artel/base/text.h"
#include "artel/cluster/launcher.h"
#include "artel/comm/control/socket.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::environment {
namespace {

constexpr const char* kNames[] = {"ARTEL_SIZE",
                                  "ARTEL_RANK",
                                  "ARTEL_ADDRESS",
                                  "ARTEL_TRANSPORT",
                                  "ARTEL_INTERFACE",
                                  "ARTEL_DOORS",
                                  "PMI_SIZE",
                                  "PMI_RANK",
                                  "PMIX_RANK",
                                  "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",
                                  "SLURM_PROCID",
                                  "SLURM_STEP_NUM_TASKS",
                                  "SLURM_STEP_NUM_NODES",
                                  "SLURM_STEP_NODELIST",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_RANK"};

}  // namespace

// Lines "NAME=VALUE": what Slurm, mpirun or our own launcher tell a worker.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  ::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1);  // where the key of tokens is kept
  for (const char* name : kNames) ::unsetenv(name);
  for (const std::string& line : split(bytes.text(), '\n')) {
    const size_t equals = line.find('=');
    if (equals == line.npos || line.find('\0') != line.npos) continue;
    for (const char* name : kNames)
      if (line.substr(0, equals) == name) ::setenv(name, line.c_str() + equals + 1, 1);
  }
  with_name(bytes, [] {
    const auto group = launched_group();
    if (group && group->transport == "gloo") comm::control::parse_endpoint(group->address);
  });
}

std::vector<std::string> seeds() {
  return {
      "SLURM_JOB_ID=123\nSLURM_STEP_ID=0\nSLURM_PROCID=1\nSLURM_STEP_NUM_TASKS=4\n"
      "SLURM_STEP_NUM_NODES=2\nSLURM_STEP_NODELIST=node[01-03,07]-ib,other\n",
      "ARTEL_SIZE=2\nARTEL_RANK=1\nARTEL_TRANSPORT=gloo\nARTEL_ADDRESS=[::1]:80\n"
      "ARTEL_DOORS=n01:7,n02:8\n",
      "OMPI_COMM_WORLD_SIZE=4\nOMPI_COMM_WORLD_RANK=3\n", "PMI_SIZE=1\nPMI_RANK=0\n"};
}

}  // namespace artel::fuzz::environment
