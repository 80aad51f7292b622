"""The annotation pages and a login with what it leads to, alone: a fault elsewhere on the site does
not hide what these tests look for.
"""

from django.contrib.auth.views import LoginView
from django.urls import include, path

from kbpo.web.desk import measures, requests, workers
from kbpo.web.public import ask

login = LoginView.as_view(template_name="people/login.html", next_page="annotate")
urlpatterns = [
    path("annotate/", include("kbpo.web.judging.urls")),
    path("login/", login, name="login"),
    *requests.urlpatterns,
    *workers.urlpatterns,
    *measures.urlpatterns,
    *ask.urlpatterns,
]
