"""The annotation pages and a login, alone: a fault elsewhere on the site does not hide what these tests look for."""

from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [path("annotate/", include("annotation.urls")), path("login/", LoginView.as_view(), name="login")]
