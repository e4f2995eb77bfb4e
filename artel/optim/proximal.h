// Proximal operators: x := argmin_u  penalty(u) + |u - x|^2 / 2, in place.
//
// A proximal gradient step is x := prox(x - rate * gradient) with the penalty's weight multiplied
// by the same rate. All weights must not be negative.
#pragma once

#include <span>

namespace artel::optim {

// weight * sum |u|: shrinks towards zero by `weight`, what is smaller becomes exactly zero.
void prox_l1(std::span<float> x, float weight);

// weight / 2 * sum u^2: divides by 1 + weight.
void prox_l2(std::span<float> x, float weight);

// l1 * sum |u| + l2 / 2 * sum u^2.
void prox_elastic_net(std::span<float> x, float l1, float l2);

// weight * |u|, the length of the whole span: a group is kept, shortened, or zeroed as one.
void prox_group(std::span<float> x, float weight);

}  // namespace artel::optim
