// The part of <type_traits> that kernels use.
#pragma once

namespace ke_device {
template <class A, class B>
struct same {
  static constexpr bool value = false;
};
template <class A>
struct same<A, A> {
  static constexpr bool value = true;
};
template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
}  // namespace ke_device

namespace std {
template <class T, T V>
struct integral_constant {
  typedef T value_type;
  static constexpr T value = V;
  __device__ constexpr operator T() const { return V; }
};
template <bool B>
using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <bool B, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, class T = void>
struct enable_if : ke_device::enable_if<B, T> {};

template <class T>
struct remove_const {
  typedef T type;
};
template <class T>
struct remove_const<const T> {
  typedef T type;
};
template <class T>
struct remove_volatile {
  typedef T type;
};
template <class T>
struct remove_volatile<volatile T> {
  typedef T type;
};
template <class T>
struct remove_cv : remove_const<typename remove_volatile<T>::type> {};
template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
struct remove_pointer {
  typedef T type;
};
template <class T>
struct remove_pointer<T*> {
  typedef T type;
};

template <class T>
struct is_floating_point
    : bool_constant<is_same<float, typename remove_cv<T>::type>::value ||
                    is_same<double, typename remove_cv<T>::type>::value> {};
// Whole numbers are what may be a switch's value but no enumeration.
template <class T>
struct is_enum : bool_constant<__is_enum(T)> {};
template <class T, class = void>
struct is_integral : false_type {};
template <class T>
struct is_integral<T, decltype((void)(T(1) % T(1)))>
    : bool_constant<!__is_enum(T) && !__is_class(T)> {};
template <class T>
struct is_arithmetic
    : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};

#define KE_TRAIT(name) \
  template <class T>   \
  inline constexpr bool name##_v = name<T>::value;
#define KE_TYPE_OF(name) \
  template <class T>     \
  using name##_t = typename name<T>::type;
KE_TRAIT(is_floating_point)
KE_TRAIT(is_integral)
KE_TRAIT(is_arithmetic)
KE_TRAIT(is_enum)
KE_TYPE_OF(remove_const)
KE_TYPE_OF(remove_volatile)
KE_TYPE_OF(remove_cv)
KE_TYPE_OF(remove_reference)
KE_TYPE_OF(remove_pointer);
#undef KE_TYPE_OF
#undef KE_TRAIT
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;
template <bool B, class T, class F>
using conditional_t = typename conditional<B, T, F>::type;
template <bool B, class T = void>
using enable_if_t = typename enable_if<B, T>::type;
}  // namespace std
