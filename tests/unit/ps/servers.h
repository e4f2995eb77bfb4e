// Workers and servers as threads, each with its own group.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/ps/client.h"
#include "artel/ps/server.h"
#include "tests/unit/comm/ranks.h"

namespace artel::ps {

// The group of a test, which outlives whatever uses it.
inline std::shared_ptr<comm::Group> borrowed(comm::Group& group) {
  return {std::shared_ptr<void>(), &group};
}

struct Scene {
  int workers = 2;
  int servers = 2;
  uint64_t keys = 100;
  Setup setup = {};
  UserRules rules = {};
  std::string transport = "shm";
};

// Runs body(client) for each worker after worker 0 has set up the servers and given all values 0.
// Returns the errors of workers and servers.
inline std::vector<std::string> run_scene(const Scene& scene,
                                          const std::function<void(Client&, comm::Group&)>& body) {
  return comm::run_ranks(
      scene.workers + scene.servers,
      [&](comm::Group& world) {
        const bool serves = world.rank() >= scene.workers;
        comm::Group own = world.split(serves ? 1 : 0);
        if (serves) {
          Server(borrowed(world), {.workers = scene.workers, .rules = scene.rules}).run();
          return;
        }
        Client client(borrowed(world), scene.workers, ShardMap::even(scene.keys, scene.servers));
        client.set_codec(scene.setup.compress);
        if (world.rank() == 0) client.set_up(scene.setup);
        own.barrier();
        body(client, own);
        client.leave();
        world.set_phase("done");
      },
      {.transport = scene.transport});
}

inline void with_servers(const Scene& scene,
                         const std::function<void(Client&, comm::Group&)>& body) {
  for (const std::string& error : run_scene(scene, body)) EXPECT_EQ(error, "");
}

inline Setup weights_of(uint64_t keys, optim::Options rule = {{"name", "sgd"}}) {
  return {.segments = {{.name = "weights", .keys = {0, keys}}}, .rule = std::move(rule)};
}

// All values.
inline std::vector<float> pull_all(Client& client) {
  std::vector<float> values(client.map().keys());
  client.run({.kind = Kind::pull,
              .keys = {0, values.size()},
              .sink = [&](size_t offset, std::span<const float> part, bool) {
                std::copy(part.begin(), part.end(), values.begin() + static_cast<long>(offset));
              }});
  return values;
}

}  // namespace artel::ps
