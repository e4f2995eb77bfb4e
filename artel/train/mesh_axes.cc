#include "artel/train/mesh_axes.h"

#include <algorithm>
#include <numeric>

namespace artel {

std::vector<MeshPlace> mesh_places(const std::vector<int>& hosts, const MeshSize& size) {
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return hosts[a] < hosts[b]; });
  std::vector<MeshPlace> places(hosts.size());
  for (int i = 0; i < static_cast<int>(order.size()); ++i)
    places[order[i]] = {i / size.workers(), i / size.tensor % size.pipeline, i % size.tensor};
  return places;
}

MeshAxes::MeshAxes(const Membership& all, const MeshSize& given) : size(given) {
  comm::Group& group = *all.group;
  place = mesh_places(group.host_numbers(), size)[static_cast<size_t>(group.rank())];
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
