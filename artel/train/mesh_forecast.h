// What a step would take in each mesh that some workers can form, before anything is started: time
// and memory, by the costs of the ops, a simulation of pipelines and a model of the links.
//
// These are forecasts: they decide who computes what, never what is computed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/comm/calibration.h"
#include "artel/graph/ops/shards.h"
#include "artel/train/mesh_axes.h"

namespace artel {

// What a process takes before it has a network.
inline constexpr double kProgramBytes = 48 << 20;

struct MeshQuestion {
  int workers = 1;
  int lanes = 1;
  int threads = 1;  // of each worker
  int shards = 1;   // tensor groups have a number of workers that divides it
  int slots = 0;    // numbers that the optimizer keeps for each parameter
  std::string schedule = "auto";
  std::string sharding = {};    // empty: any
  double memory = 0;            // bytes that each worker has; 0: any number
  bool mirrors = false;         // parts have copies (cluster.mirror_every)
  std::vector<int> hosts = {};  // the machine of each worker; empty: the same
  comm::Calibration links = {};
  // What a lane computes with these shards, and the seconds of its nodes on one thread.
  std::function<Graph(const ShardPart&)> graph;
  std::function<std::vector<double>(const Graph&)> seconds;
};

struct MeshForecast {
  int data = 1;  // copies of the network
  MeshSize size;
  std::string sharding = "none", schedule = {};
  double seconds = 0;  // of a step
  double memory = 0;   // bytes of the worker that needs most
  double mirrors = 0;  // and of copies of parts, which are made where there is room for them

  int workers() const { return data * size.workers(); }
  bool fits(double limit) const { return limit <= 0 || memory <= limit; }
  bool fits_with_mirrors(double limit) const;
};

// "data 2 x pipeline 2 x tensor 1, sharding "gradients"".
std::string to_string(const MeshForecast& mesh);

// All that are possible, simple ones first.
std::vector<MeshForecast> forecast_meshes(const MeshQuestion& question);
// Of one of them. The mesh is possible.
MeshForecast forecast_mesh(const MeshQuestion& question, const MeshSize& size,
                           const std::string& sharding);

// The fastest that fits with copies of its parts, or else without them; of about equally fast ones,
// the simplest. Nothing if none fits.
std::optional<MeshForecast> best_mesh(const std::vector<MeshForecast>& meshes, double memory);

// For people who ask why: the best beside the others, in a sentence.
std::string reasons_for(const MeshForecast& best, const std::vector<MeshForecast>& meshes,
                        double memory);
// What to change so that the network fits, in words: another mesh of as many workers or of more.
std::string what_would_fit(MeshQuestion question);

}  // namespace artel
