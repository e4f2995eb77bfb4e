#include "artel/train/parts/mesh_axes.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace artel {

std::vector<MeshPlace> mesh_places(const MeshWorkers& workers, const MeshSize& size) {
  std::map<int, double> slowest;  // by machine
  for (size_t i = 0; i < workers.hosts.size(); ++i) {
    const auto [found, fresh] = slowest.try_emplace(workers.hosts[i], workers.speed(i));
    if (!fresh) found->second = std::min(found->second, workers.speed(i));
  }
  std::vector<int> order(workers.hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int rank) {
    const int host = workers.hosts[rank];
    return std::pair(-slowest.at(host), host);
  });
  std::vector<MeshPlace> places(order.size());
  for (int i = 0; i < static_cast<int>(order.size()); ++i)
    places[order[i]] = {i / size.workers(), i / size.tensor % size.pipeline, i % size.tensor};
  return places;
}

std::vector<double> stage_speeds(const MeshWorkers& workers, const MeshSize& size) {
  std::vector<double> speeds(static_cast<size_t>(size.pipeline), 1.0);
  const std::vector<MeshPlace> places = mesh_places(workers, size);
  for (size_t i = 0; i < places.size(); ++i)
    speeds[places[i].stage] = std::min(speeds[places[i].stage], workers.speed(i));
  return speeds;
}

MeshAxes::MeshAxes(const Membership& all, const MeshSize& given, const std::vector<double>& speeds)
    : size(given) {
  comm::Group& group = *all.group;
  place = mesh_places({group.host_numbers(), speeds}, size)[static_cast<size_t>(group.rank())];
  const auto split = [&](int colour, int key) {
    return std::make_shared<comm::Group>(group.split(colour, key));
  };
  once = split(place.data, place.part(size));
  pipeline = once;
  if (size.tensor > 1) {
    pipeline = split(place.data * size.tensor + place.tensor, place.stage);
    tensor = split(place.data * size.pipeline + place.stage, place.tensor);
  }
  across = {.generation = all.generation, .group = nullptr};
  if (group.size() > size.workers()) across.group = split(place.part(size), place.data);
}

}  // namespace artel
